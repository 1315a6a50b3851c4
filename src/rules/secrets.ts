import { createCipheriv, createDecipheriv, randomBytes, randomInt, randomUUID } from 'node:crypto';
import { createHmac, hash, hkdfSync, timingSafeEqual } from 'node:crypto';

/** A new API key: a random UUID v4 (122 bits from the system's random source), in lower case. */
export function newApiKey(): string {
  return randomUUID();
}

/** A new verification or recovery token: a random UUID v4, in lower case. */
export function newToken(): string {
  return randomUUID();
}

/** A new token for a link in a mail that opens a page: 32 random bytes as 43 base64url characters. */
export function newLinkToken(): string {
  return randomBytes(32).toString('base64url');
}

/** SHA-256 as 64 hex digits. Enough for keys and tokens, which are random: guessable secrets need a slow hash. */
export function sha256(text: string): string {
  return hash('sha256', text);
}

/** A UUID of any version, in any case: the form of an id. */
export const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A UUID of a key or token, in the form that {@link newApiKey} and {@link newToken} give. */
export const uuidV4Pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const sealVersion = 'v1.';
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Encrypts by AES-256-GCM: `v1.` and base64url of random nonce, ciphertext and tag. The key has 32 bytes; `context`
 * (kind and row of the text) is authenticated, so that a sealed text moved elsewhere does not open.
 */
export function seal(secretKey: Buffer, plain: string, context: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', secretKey, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(context, 'utf8'));
  const sealed = [nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()];
  return sealVersion + Buffer.concat(sealed).toString('base64url');
}

/** The text that {@link seal} sealed with the same key and context, or null when anything differs. */
export function unseal(secretKey: Buffer, sealed: string, context: string): string | null {
  if (!sealed.startsWith(sealVersion)) return null;
  const encoded = sealed.slice(sealVersion.length);
  const bytes = Buffer.from(encoded, 'base64url');
  // The decoder skips what is not base64url: only the one canonical spelling is accepted.
  if (bytes.length < nonceBytes + tagBytes || bytes.toString('base64url') !== encoded) return null;
  const nonce = bytes.subarray(0, nonceBytes);
  const decipher = createDecipheriv('aes-256-gcm', secretKey, nonce, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context, 'utf8'));
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const plain = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
  try {
    return Buffer.concat([plain, decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}

/** The sealing key (32 bytes) of what only the holder of a verification token may read again. */
export function keyFromToken(token: string): Buffer {
  return deriveKey(token, 'masthead token v1');
}

/** The sealing key (32 bytes) made from the operator's `SECRET`, for mail that waits in the outbox. */
export function keyFromSecret(secret: string): Buffer {
  return deriveKey(secret, 'masthead secret v1');
}

/** HKDF-SHA256 (RFC 5869) without salt; `info` keeps the keys of different purposes apart. */
function deriveKey(secret: string, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', info, 32));
}

let lastTime = -1;
let counter = 0;

/**
 * A UUID v7; `now` in epoch ms. Those of one process and millisecond ascend: a 26-bit counter with a random start in its
 * lower half (RFC 9562, section 6.2, method 1), then 48 random bits.
 */
export function uuidv7(now: number): string {
  // Node draws random bytes for UUIDs in batches.
  const random = randomUUID();
  if (now === lastTime) counter += 1;
  else counter = parseInt(random.slice(0, 7), 16) >>> 3;
  lastTime = now;
  const time = now.toString(16).padStart(12, '0');
  const high = (0x7000 | ((counter >>> 14) & 0xfff)).toString(16);
  const low = (0x8000 | (counter & 0x3fff)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${high}-${low}-${random.slice(24)}`;
}

const idsPerStart = 2 ** 24;
let idStart = '';
let idCount = idsPerStart;

/**
 * A new id of a request: a UUID v8 (RFC 9562, 5.8), of 24 random hex digits and a count. Not a random one for each,
 * since writing that out would be a fiftieth of the cost of a cached page; so it is unique, but can be guessed.
 */
export function newRequestId(): string {
  if (idCount === idsPerStart) {
    const random = randomUUID();
    idStart = `${random.slice(0, 14)}8${random.slice(15, 29)}`;
    idCount = 0;
  }
  // Seven digits, the first of which is always 1.
  return idStart + (idsPerStart + idCount++).toString(16);
}

type HashPurpose = 'mailbox' | 'reporter' | 'client address' | 'idempotency key' | 'request' | 'probe';

/**
 * A name for a text that only holders of the key can compute, so that it cannot be found by trying all texts:
 * HMAC-SHA256 as 43 base64url characters. `purpose` keeps equal texts of different kinds apart.
 */
export function keyedHash(secretKey: Buffer, purpose: HashPurpose, text: string): string {
  return createHmac('sha256', secretKey).update(`${purpose}:${text}`).digest('base64url');
}

/** A UUID that depends on the text alone and reveals nothing of it without the key: HMAC-SHA256 formed as version 7. */
export function uuidOf(secretKey: Buffer, text: string): string {
  const bytes = createHmac('sha256', secretKey).update(text).digest().subarray(0, 16);
  bytes.writeUInt16BE(0x7000 | (bytes.readUInt16BE(6) & 0xfff), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const codeBytes = 16;

/** What a signed token is for; each kind has a key of its own. */
type SignedPurpose = 'preview' | 'upload';

/**
 * A token that stands for what it carries, so that nothing of it is stored: `plain`, and 16 bytes of an HMAC over that
 * and `bound`, which the token does not show. In base64url.
 */
export function signedToken(secretKey: Buffer, purpose: SignedPurpose, plain: Buffer, bound: string): string {
  return Buffer.concat([plain, codeOf(secretKey, purpose, plain, bound)]).toString('base64url');
}

/** What a token carries, in as many bytes; null where it is of another form. Its signature is not looked at. */
export function plainOfToken(token: string, length: number): Buffer | null {
  const bytes = Buffer.from(token, 'base64url');
  // The decoder skips what is not base64url: only the one canonical spelling is accepted.
  if (bytes.length !== length + codeBytes || bytes.toString('base64url') !== token) return null;
  return bytes.subarray(0, length);
}

/** Whether {@link signedToken} made a token of this form, with the same key, purpose and `bound`. */
export function isSigned(secretKey: Buffer, purpose: SignedPurpose, token: string, bound: string): boolean {
  const bytes = Buffer.from(token, 'base64url');
  const plain = bytes.subarray(0, -codeBytes);
  return timingSafeEqual(bytes.subarray(-codeBytes), codeOf(secretKey, purpose, plain, bound));
}

function codeOf(secretKey: Buffer, purpose: SignedPurpose, plain: Buffer, bound: string): Buffer {
  const key = Buffer.from(hkdfSync('sha256', secretKey, '', `masthead ${purpose} v1`, 32));
  return createHmac('sha256', key).update(plain).update(bound).digest().subarray(0, codeBytes);
}

/** The 16 bytes of a UUID. */
export function uuidBytes(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex');
}

/** The UUID of 16 bytes. */
export function uuidOfBytes(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** 16 hex digits that identify a key without revealing it. */
export function fingerprintOf(secretKey: Buffer): string {
  return createHmac('sha256', secretKey).update('masthead secret fingerprint v1').digest('hex').slice(0, 16);
}

/** `length` characters of `a-z 0-9`, each as likely as any other. */
export function shortRandom(length: number): string {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';
  return Array.from({ length }, () => alphabet.charAt(randomInt(alphabet.length))).join('');
}
