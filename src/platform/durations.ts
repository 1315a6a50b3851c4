/** An hour, ms. */
export const hour = 3_600_000;

/** A day, ms. */
export const day = 24 * hour;
