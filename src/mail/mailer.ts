/** One message, ready to go out. Subject and bodies are ASCII, with `\n` between lines of at most 998 characters. */
export type OutgoingMail = {
  /** Left part of the Message-ID, letters, digits, `.` and `-`: the same at every attempt, so that a double can be told. */
  readonly id: string;
  /** One validated address, without a name. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** ISO 8601; becomes the `Date` header. */
  readonly createdAt: string;
};

/** The last hop of a message: an SMTP server or a folder. */
export type Mailer = {
  /** Resolves when the next hop has taken the message over; rejects with a {@link MailError}. */
  send(mail: OutgoingMail): Promise<void>;
  /** Closes connections. A message in flight may still be delivered. */
  close(): Promise<void>;
};

/** Why a message did not go out, in words that may be logged: without addresses, texts or secrets. */
export class MailError extends Error {
  /** True if the same message will not be accepted later either; false if it should be tried again. */
  readonly permanent: boolean;
  /** True if the recipient was refused, as anybody can bring about by registering an address. */
  readonly ofRecipient: boolean;
  /** True if the address itself takes no mail, now or later. */
  readonly ofAddress: boolean;

  constructor(
    message: string,
    permanent: boolean,
    { ofRecipient = false, ofAddress = false }: { ofRecipient?: boolean; ofAddress?: boolean } = {},
  ) {
    super(message);
    this.name = 'MailError';
    this.permanent = permanent;
    this.ofRecipient = ofRecipient;
    this.ofAddress = ofAddress;
  }
}
