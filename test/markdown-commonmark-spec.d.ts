declare module 'commonmark-spec' {
  /** The examples of the CommonMark specification, in order. */
  export const tests: readonly {
    readonly number: number;
    readonly section: string;
    /** Tabs are written as `→`. */
    readonly markdown: string;
    readonly html: string;
  }[];
}
