import type { Config } from '../../config/config.ts';
import { newProbe, probeHeader, type Seen } from '../../http/own-probe.ts';
import { errorMessage } from '../../rules/failure.ts';
import { shortRandom } from '../../rules/secrets.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';
import { hostOf } from './names.ts';
import type { Answered, Probes } from './probes.ts';

const day = 86_400_000;
/** Days before its end at which a certificate should have been renewed: those of ninety days are a month before. */
const renewedBefore = 14;
/** An address of documentation (RFC 5737), which no client has. */
const claimed = '203.0.113.77';

/** The certificate of the service's host, and of a blog's: `slug` is one that there is, or null. */
export async function examineCertificate(
  { site, variant }: Config,
  { certificate, now }: Probes,
  slug: string | null,
): Promise<Finding> {
  const what = 'certificate';
  const { hostname, port } = new URL(site.baseUrl);
  const blog = `${slug ?? `masthead-${shortRandom(12)}`}.${hostOf(site.blogDomain)}`;
  const hosts = variant.blogHosts ? [hostname, blog] : [hostname];
  let least = Infinity;
  for (const host of hosts) {
    const isBlog = host !== hostname;
    const mend = isBlog
      ? `certbot certonly --manual --preferred-challenges dns -d ${hostname} -d '*.${hostOf(site.blogDomain)}'`
      : `systemctl reload caddy || certbot renew --cert-name ${hostname} --deploy-hook 'systemctl reload nginx'`;
    try {
      const { validTo, fault } = await certificate(host, Number(port) || 443);
      const days = Math.floor((validTo - now()) / day);
      if (days < 0) return { what, state: 'wrong', detail: `that of ${host} ended ${-days} days ago`, mend };
      if (fault !== null)
        return { what, state: 'wrong', detail: `that of ${host} is refused by clients: ${fault}`, mend };
      least = Math.min(least, days);
      if (days < renewedBefore)
        return {
          what,
          state: 'look',
          detail: `that of ${host} ends in ${days} days, and was not renewed`,
          mend,
        };
    } catch (error) {
      const detail = `there is none at ${host}, port ${port || 443} (${errorMessage(error)})`;
      return { what, state: 'wrong', detail, mend };
    }
  }
  return { what, state: 'ok', detail: `${hosts.join(' and ')} have one for ${least} more days` };
}

/** The way from outside to this service: that its own request arrives, as what it was, and its answer comes back. */
export async function examineWayIn(
  config: Config,
  { ask, now }: Probes,
  secretKey: Buffer,
): Promise<readonly Finding[]> {
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
  if ([502, 503, 504].includes(status) && seenIn(answer) === null)
    return wrong(
      `${url} answers ${status}: the proxy does not reach the service`,
      `systemctl restart masthead; ${toService}`,
    );
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
  return [...findings, examineTrust(config, seen)];
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
