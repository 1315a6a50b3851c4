import { createPublicKey } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import type { Config } from '../../config/config.ts';
import { parseSender } from '../../config/mail-settings.ts';
import { errorMessage } from '../../rules/failure.ts';
import { isLoopback } from '../../rules/hosts.ts';
import { shortRandom } from '../../rules/secrets.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';
import type { Probes } from './probes.ts';

/** Whether nobody outside of this machine is meant to use the service: then nobody outside is asked about it. */
export function isLocal({ site }: Config): boolean {
  return isLoopback(new URL(site.baseUrl).hostname);
}

/** The hosts that must be found: of the service, of blogs, and the former ones. */
export async function examineHosts(
  { site, variant, alsoHosts }: Config,
  { addresses }: Probes,
): Promise<Finding> {
  const { hostname } = new URL(site.baseUrl);
  const blogs = hostOf(site.blogDomain);
  const others = alsoHosts.map(hostOf).filter((host) => !isLoopback(host));
  const own = await addresses(hostname);
  const value = own[0] ?? '203.0.113.1';
  const record = (name: string, address = value) =>
    `${name}. 300 IN ${address.includes(':') ? 'AAAA' : 'A'} ${address}`;
  const what = 'dns';
  if (own.length === 0)
    return {
      what,
      state: 'wrong',
      detail: `${hostname} has no address: nobody finds the service. Add the address of this machine to DNS`,
      mend: record(hostname, 'ADDRESS'),
    };
  // A name that nobody has asked for: no cache knows it, and no blog has it.
  if (variant.blogHosts && (await addresses(`masthead-${shortRandom(12)}.${blogs}`)).length === 0)
    return {
      what,
      state: 'wrong',
      detail: `*.${blogs} has no address: no blog is found, as each has a host of its own`,
      mend: record(`*.${blogs}`),
    };
  for (const host of others)
    if ((await addresses(host)).length === 0)
      return {
        what,
        state: 'look',
        detail: `${host}, of ALSO_HOSTS, has no address: links to it lead nowhere`,
        mend: record(host),
      };
  const all = variant.blogHosts ? `${hostname} and *.${blogs}` : hostname;
  return { what, state: 'ok', detail: `${all} have the address ${own.join(', ')}` };
}

/** A host without its port. */
export function hostOf(host: string): string {
  return new URL(`http://${host}`).hostname;
}

const senderDomain = ({ mail }: Config) => parseSender(mail.from).host.toLowerCase();

/** Who may send for the domain of MAIL_FROM (RFC 7208). */
export async function examineSpf(config: Config, { texts, addresses }: Probes): Promise<Finding> {
  const domain = senderDomain(config);
  const records = (await texts(domain)).filter((text) => /^v=spf1(?: |$)/i.test(text));
  const smtpHost = config.mail.smtpUrl === null ? '' : new URL(config.mail.smtpUrl).hostname;
  const mend = `${domain}. 300 IN TXT "v=spf1 a:${smtpHost} ~all"`;
  const finding = (state: Finding['state'], detail: string) => ({
    what: 'spf',
    state,
    detail,
    ...(state === 'ok' ? {} : { mend }),
  });
  const [record = ''] = records;
  if (records.length === 0)
    return finding('look', `${domain} has no SPF record: many servers take its mail for spam`);
  if (records.length > 1)
    return finding(
      'wrong',
      `${domain} has ${records.length} SPF records, which counts as none: merge them into one`,
    );
  if (smtpHost !== '' && !(await mayName(record, smtpHost, addresses))) {
    const merged = record.replace(/\s+[-~?+]?all\s*$|$/i, (all) => ` a:${smtpHost}${all}`);
    return {
      ...finding(
        'look',
        `${domain} does not name ${smtpHost} (${record}): servers refuse its mail, unless it sends by another`,
      ),
      mend: `${domain}. 300 IN TXT "${merged}"`,
    };
  }
  if (/\s\+?all\s*$/i.test(record)) return finding('look', `${domain} lets everybody send (${record})`);
  return finding('ok', `${domain}: ${record}`);
}

/** Whether a record may name a host: false only where it lists nothing but addresses and hosts, and this is none of them. */
async function mayName(record: string, host: string, addresses: Probes['addresses']): Promise<boolean> {
  const of = async (name: string) => (isIP(name) === 0 ? addresses(name) : [name]);
  const named = new BlockList();
  for (const term of record.toLowerCase().split(/\s+/).slice(1)) {
    if (/^[-~?]all$|^exp=/.test(term)) continue;
    const [, name, net, bits] = /^\+?(?:a:([\w.-]+)|ip[46]:([\d.:a-f]+)(?:\/(\d+))?)$/.exec(term) ?? [];
    if (net !== undefined && isIP(net) !== 0)
      named.addSubnet(net, Number(bits ?? (isIP(net) === 4 ? 32 : 128)), familyOf(net));
    // What others include, or a macro names, is not looked up.
    else if (name === undefined || name === host) return true;
    else for (const address of await of(name)) named.addAddress(address, familyOf(address));
  }
  const own = await of(host);
  return own.length === 0 || own.some((address) => named.check(address, familyOf(address)));
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** The key that mail is signed with (RFC 6376). */
export async function examineDkim({ mail }: Config, { texts }: Probes): Promise<Finding> {
  const what = 'dkim';
  const { dkim } = mail;
  if (dkim === null)
    return {
      what,
      state: 'ok',
      detail: 'messages are not signed here (DKIM_DOMAIN): the mail server has to',
    };
  const name = `${dkim.selector}._domainkey.${dkim.domain}`;
  const key = createPublicKey(dkim.privateKey).export({ type: 'spki', format: 'der' }).toString('base64');
  const record = (await texts(name)).find((text) => /(?:^|;)\s*p=/.test(text));
  const published = /(?:^|;)\s*p=([^;]*)/.exec(record ?? '')?.[1]?.replaceAll(/\s/g, '');
  if (published === key) return { what, state: 'ok', detail: `${name} holds the key of DKIM_PRIVATE_KEY` };
  const mend = `${name}. 300 IN TXT "v=DKIM1; k=rsa; p=${key}"`;
  const fault = record === undefined ? 'has no key' : 'holds another key than DKIM_PRIVATE_KEY';
  return { what, state: 'wrong', detail: `${name} ${fault}: signatures of messages fail`, mend };
}

/** What others are to do with mail that fails (RFC 7489): of the domain or, where it has no record, of one above. */
export async function examineDmarc(config: Config, { texts }: Probes): Promise<Finding> {
  const what = 'dmarc';
  const domain = senderDomain(config);
  const labels = domain.split('.');
  for (let n = 0; n < labels.length - 1; n++) {
    const name = `_dmarc.${labels.slice(n).join('.')}`;
    const records = (await texts(name)).filter((text) => /^v\s*=\s*DMARC1\b/i.test(text));
    const [record] = records;
    if (record === undefined) continue;
    if (
      records.length === 1 &&
      /^v\s*=\s*DMARC1\s*;\s*p\s*=\s*(?:none|quarantine|reject)\s*(?:;|$)/i.test(record)
    )
      return { what, state: 'ok', detail: `${name}: ${record}` };
    const fault =
      records.length > 1 ? `${records.length} records` : `a record that cannot be read (${record})`;
    return {
      what,
      state: 'wrong',
      detail: `${name} has ${fault}, which counts as none: one has to begin with v=DMARC1; p=`,
      mend: `${name}. 300 IN TXT "v=DMARC1; p=quarantine"`,
    };
  }
  return {
    what,
    state: 'look',
    detail: `${domain} has no DMARC record, which large mail providers require`,
    mend: `_dmarc.${domain}. 300 IN TXT "v=DMARC1; p=quarantine"`,
  };
}

/** That the mail server takes the login of SMTP_URL. */
export async function examineLogin({ mail }: Config, { login }: Probes): Promise<Finding> {
  const what = 'smtp';
  const { smtpUrl: url, from } = mail;
  if (url === null) return { what, state: 'ok', detail: 'SMTP_URL is not set' };
  const { host } = new URL(url);
  try {
    await login({ url, from });
    return { what, state: 'ok', detail: `${host} takes the login` };
  } catch (error) {
    const [advice, mend] = mendLogin(new URL(url), errorMessage(error));
    const detail = `${host}: ${errorMessage(error)}; nothing is sent until it takes the login${advice}`;
    return { what, state: 'wrong', detail, mend };
  }
}

/** What to look at, and the setting that mends it. */
function mendLogin({ protocol, hostname, port, username }: URL, reason: string): [string, string] {
  const login = username === '' ? '' : `${username}:PASSWORD@`;
  const setting = (scheme: string, at: string) => `SMTP_URL=${scheme}//${login}${hostname}${at && `:${at}`}`;
  if (/wrong version number/.test(reason))
    return [': that port speaks TLS only after STARTTLS', setting('smtp:', port)];
  if (port === '465' && protocol === 'smtp:')
    return [': port 465 speaks TLS from the first byte', setting('smtps:', port)];
  if (/STARTTLS/i.test(reason))
    return [': it offers no TLS there, and a password is not sent in clear', setting('smtps:', '465')];
  if (/certificate|altname/i.test(reason))
    return [
      ': nothing here trusts its certificate',
      'cp AUTHORITY.crt /usr/local/share/ca-certificates/ && update-ca-certificates; systemctl restart masthead',
    ];
  if (/ AUTH\b/.test(reason)) return [': correct user and password', setting(protocol, port)];
  return [': correct host and port', setting(protocol, port)];
}
