/** The call that usually follows, complete enough to be made without reading documentation. */
export type NextStep = {
  readonly description: string;
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
};
