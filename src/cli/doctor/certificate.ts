import type { Config } from '../../config/config.ts';
import { errorMessage } from '../../rules/failure.ts';
import { shortRandom } from '../../rules/secrets.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';
import { hostOf } from './names.ts';
import type { Probes } from './probes.ts';
import { day } from '../../platform/durations.ts';

/** Days before its end at which a certificate should have been renewed: those of ninety days are a month before. */
const renewedBefore = 14;

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
    const anew = variant.blogHosts
      ? `certbot certonly --manual --preferred-challenges dns -d ${hostname} -d '*.${hostOf(site.blogDomain)}'`
      : `certbot certonly --webroot -w /var/www/html -d ${hostname} --deploy-hook 'systemctl reload nginx'`;
    const mend = isBlog
      ? anew
      : `systemctl reload caddy || certbot renew --cert-name ${hostname} --deploy-hook 'systemctl reload nginx'`;
    try {
      const { validTo, fault } = await certificate(host, Number(port) || 443);
      const days = Math.floor((validTo - now()) / day);
      if (days < 0) return { what, state: 'wrong', detail: `that of ${host} ended ${-days} days ago`, mend };
      if (fault !== null) {
        const [reason, how] = refusals[fault] ?? [fault, null];
        const detail = `that of ${host} is refused by clients: ${reason}`;
        return { what, state: 'wrong', detail, mend: how?.(hostname) ?? (how === null ? mend : anew) };
      }
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

const ownAuthority =
  'cp AUTHORITY.crt /usr/local/share/ca-certificates/ && update-ca-certificates   (on the machines of clients too)';
const wholeChain = (host: string) => `nginx: ssl_certificate /etc/letsencrypt/live/${host}/fullchain.pem;`;

/** Refused certificates, by code: why, and what mends them where that is no new one. */
const refusals: Readonly<Record<string, [reason: string, mend?: (host: string) => string]>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: ['it is signed by itself'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['it is of other hosts'],
  SELF_SIGNED_CERT_IN_CHAIN: ['nothing here trusts its authority', () => ownAuthority],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ['nothing here trusts its authority', () => ownAuthority],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ['the certificate between it and its authority is not sent', wholeChain],
};
