import type { Config } from '../../config/config.ts';
import { hostAndPort } from '../../config/values.ts';
import { reachedAt } from '../../process/port.ts';
import { isListening } from './machine.ts';
import { postBodyLimit } from '../../rules/post-fields.ts';
import { newProbe, probeHeader, type Seen } from '../../http/own-probe.ts';
import { errorCode, errorMessage } from '../../rules/failure.ts';
import { shortRandom } from '../../rules/secrets.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';
import { hostOf } from './names.ts';
import type { Answered, Probes } from './probes.ts';

/** An address of documentation (RFC 5737), which no client has. */
const claimed = '203.0.113.77';

/** The way from outside to this service, by every address that DNS gives. */
export async function examineWayIn(
  config: Config,
  probes: Probes,
  secretKey: Buffer,
): Promise<readonly Finding[]> {
  const [arrived, addresses] = await Promise.all([
    examineArrival(config, probes, secretKey),
    examineAddresses(config, probes, secretKey),
  ]);
  // Where no way at all leads here, DNS is not to blame.
  const isReached = addresses.includes(null) || arrived.some(({ state }) => state === 'ok');
  return [...arrived, ...(isReached ? addresses.filter((found) => found !== null) : [])];
}

/** That doctor's own request arrives, as what it was, and its answer comes back. */
async function examineArrival(
  config: Config,
  probes: Probes,
  secretKey: Buffer,
): Promise<readonly Finding[]> {
  const { ask, now } = probes;
  const { site } = config;
  const url = `${site.baseUrl}/readyz`;
  const { nonce, value } = newProbe(secretKey, now());
  const wrong = (detail: string, mend: string): Finding[] => [
    { what: 'way in', state: 'wrong', detail, mend },
  ];
  let answer: Answered;
  try {
    answer = await ask(url, { [probeHeader]: value, 'x-forwarded-for': claimed });
  } catch (error) {
    const mend = `systemctl status caddy nginx; ss -ltnp 'sport = :${new URL(url).port || (url.startsWith('https') ? 443 : 80)}'`;
    return wrong(
      `${url} does not answer (${errorMessage(error)}): is the proxy running, the port open?`,
      mend,
    );
  }
  const { status, headers } = answer;
  const toService = `curl -i http://${config.host}:${config.port}/readyz`;
  if ([502, 503, 504].includes(status) && seenIn(answer) === null) {
    const isServed = await isListening(config, probes, secretKey);
    const place = hostAndPort({ ...config, host: reachedAt(config.host) });
    return wrong(
      `${url} answers ${status}: the proxy does not reach the service${isServed ? `, which listens at ${place}` : ''}`,
      isServed
        ? `nginx: upstream masthead { server ${place} max_fails=0; }   Caddy: reverse_proxy ${place}`
        : `systemctl restart masthead; ${toService}`,
    );
  }
  const moved = movedTo(headers.location, url);
  if (status >= 300 && status < 400 && moved !== null)
    return wrong(`${url} leads on to ${moved}: BASE_URL is not where the service is`, `BASE_URL=${moved}`);
  const seen = seenIn(answer);
  if (seen === null || seen.nonce !== nonce)
    return wrong(
      `${url} (${status}) is not answered by this service: another one is there, it has another secret or an older release, or something in front drops headers or caches`,
      `${toService}; then see to which address the proxy sends ${site.baseUrl}`,
    );
  const findings: Finding[] = [];
  if (seen.host.toLowerCase() !== new URL(site.baseUrl).host)
    findings.push(
      ...wrong(
        `the Host ${new URL(site.baseUrl).host} arrives as ${seen.host}: the proxy changes it`,
        'nginx: proxy_set_header Host $http_host;   Caddy passes it on by itself',
      ),
    );
  if (headers['x-request-id'] !== seen.requestId)
    findings.push({
      what: 'way in',
      state: 'look',
      detail: `the answer's X-Request-Id is not the service's own (${seen.requestId}): reports of it will not be found in the log`,
      mend: 'nginx: remove add_header X-Request-Id and proxy_hide_header X-Request-Id',
    });
  if (findings.length === 0)
    findings.push({ what: 'way in', state: 'ok', detail: `${url}: request id and address come back` });
  return [...findings, examineTrust(config, seen), ...(await examineBodies(config, probes))];
}

/** Addresses of one host that are asked. */
const mostAddresses = 4;

/** What is wrong with each address that DNS gives, or null: one alone may be another machine's, or a former one. */
async function examineAddresses(
  { site, variant }: Config,
  { addresses, ask, now }: Probes,
  secretKey: Buffer,
): Promise<(Finding | null)[]> {
  const { protocol, host, hostname, port } = new URL(site.baseUrl);
  const blogs = hostOf(site.blogDomain);
  const names = [
    { name: hostname, authority: host },
    ...(variant.blogHosts
      ? [{ name: `*.${blogs}`, authority: `masthead-${shortRandom(12)}.${blogs}${port && `:${port}`}` }]
      : []),
  ];
  const examine = async (
    { name, authority }: (typeof names)[number],
    address: string,
  ): Promise<(Finding | null)[]> => {
    const { nonce, value } = newProbe(secretKey, now());
    const lead = `${address}, which DNS gives for ${name},`;
    const mend = `${name}. 300 IN ${address.includes(':') ? 'AAAA' : 'A'} ADDRESS   (in place of ${address})`;
    try {
      const answer = await ask(`${protocol}//${authority}/readyz`, { [probeHeader]: value }, address);
      if (seenIn(answer)?.nonce === nonce) return [null];
      return [{ what: 'dns', state: 'wrong', detail: `${lead} is not this service's`, mend }];
    } catch (error) {
      // A machine behind a router may not reach itself by its public address, nor one without IPv6 others.
      if (errorCode(error) === 'ENETUNREACH') return [];
      return [
        { what: 'dns', state: 'look', detail: `${lead} does not answer here (${errorMessage(error)})`, mend },
      ];
    }
  };
  const found = names.map(async (each) => {
    const given = await addresses(hostOf(each.authority)).catch(() => []);
    return Promise.all(given.slice(0, mostAddresses).map((address) => examine(each, address)));
  });
  return (await Promise.all(found)).flat(2);
}

/** Whether what stands in front lets bodies through that the service takes. */
async function examineBodies({ site, media }: Config, { announce }: Probes): Promise<Finding[]> {
  const bodies: [path: string, bytes: number][] = [
    ['/api/publish', postBodyLimit],
    ['/api/media', media.max],
  ];
  const found = bodies.map(async ([path, bytes]): Promise<Finding[]> => {
    const status = await announce(`${site.baseUrl}${path}`, bytes).catch(() => null);
    const detail = `${path} refuses ${bytes} bytes, which the service takes: the proxy does`;
    const mend = `nginx: client_max_body_size ${Math.ceil(bytes / 1024 ** 2) + 2}m;   (for ${path})`;
    return status === 413 ? [{ what: 'way in', state: 'wrong', detail, mend }] : [];
  });
  return (await Promise.all(found)).flat();
}

/** The origin of another address that an answer leads to, or null. */
function movedTo(location: string | undefined, url: string): string | null {
  if (location === undefined || !URL.canParse(location, url)) return null;
  const { origin } = new URL(location, url);
  return origin === new URL(url).origin ? null : origin;
}

function seenIn({ body }: Answered): Seen | null {
  try {
    const read: unknown = JSON.parse(body);
    const seen: unknown = Reflect.get(Object(read), 'seen');
    return typeof seen === 'object' && seen !== null && 'nonce' in seen ? (seen as Seen) : null;
  } catch {
    return null;
  }
}

/** Whether calls count against the client that makes them, whatever it claims. */
function examineTrust({ site, trustProxy }: Config, seen: Seen): Finding {
  const what = 'proxy';
  const { peer, client, forwardedFor, trusted } = seen;
  const byProxy = 'nginx: proxy_set_header X-Forwarded-For $remote_addr;   Caddy sets it by itself';
  const last = forwardedFor?.split(',').at(-1)?.trim();
  if (client === claimed && last === claimed)
    return {
      what,
      state: 'wrong',
      detail: `a client names its own address: ${peer} passes on the X-Forwarded-For that it sends, so that limits bind nobody`,
      mend: byProxy,
    };
  if (client === claimed)
    return {
      what,
      state: 'unknown',
      detail: `TRUST_PROXY names ${last}, where this command runs: run it on another machine to see what clients count as`,
    };
  // TLS ends at a proxy: this service speaks none.
  const isProxied = site.baseUrl.startsWith('https:') || forwardedFor !== null;
  const isOnlyOurs = forwardedFor === null || forwardedFor === claimed;
  if (isProxied && isOnlyOurs)
    return {
      what,
      state: 'wrong',
      detail: `${peer} sets no X-Forwarded-For: all clients count as one, and share its limits`,
      mend: byProxy,
    };
  if (isProxied && !trusted)
    return {
      what,
      state: 'wrong',
      detail: `TRUST_PROXY (${trustProxy.join(', ') || 'empty'}) does not name ${peer}: all clients count as one, and share its limits`,
      mend: `TRUST_PROXY=${/^(?:127\.|::1$|::ffff:127\.)/.test(peer) ? 'loopback' : peer.replace('::ffff:', '')}`,
    };
  return { what, state: 'ok', detail: `this call counts against ${client}` };
}
