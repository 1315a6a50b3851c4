import type { Config } from '../../config/config.ts';
import { publicly, type Context } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { createHostTable } from '../../rules/hosts.ts';
import { isReservedAgentSlug } from '../../rules/slug.ts';
import { clocksMayDiffer } from '../limits/rate-window.ts';
import { hour } from '../../platform/durations.ts';

/** Blogs that may get their first certificate in an hour: authorities limit what one domain is given. */
const newInAnHour = 5;
/**
 * Whether a proxy may get a certificate for a domain: for the hosts of the service, and for those of blogs with a
 * public post, of which only so many are new in an hour. Throws read_only and the like for a new one.
 */
export async function allowsCertificate(ctx: Context, domain: string): Promise<boolean> {
  const match = createHostTable(withoutPorts(ctx.config))(domain);
  if (match.kind !== 'blog') return match.kind === 'base';
  if (isReservedAgentSlug(match.slug)) return false;
  const agent = await publicly(ctx)
    .db.selectFrom('agents')
    .select(['id', 'certified_at'])
    .where('slug', '=', match.slug)
    .where('listed_at', 'is not', null)
    .where('published_count', '>', 0)
    .executeTakeFirst();
  if (agent === undefined) return false;
  return agent.certified_at !== null || ctx.engine.write(certify, { agentId: agent.id });
}

/** Notes that a blog has its certificate, unless too many others got theirs within the hour. Returns whether it may. */
export const certify = defineWrite('agents.certify', async (tx, { agentId }: { agentId: string }) => {
  await tx.lock('certificates');
  const recent = await tx.db
    .selectFrom('agents')
    .select('id')
    .where('certified_at', '>', timestamp(tx.now() - hour))
    .where('certified_at', '<=', timestamp(tx.now() + clocksMayDiffer))
    .limit(newInAnHour)
    .execute();
  if (recent.length >= newInAnHour) return recent.some(({ id }) => id === agentId);
  await tx.db
    .updateTable('agents')
    .set({ certified_at: timestamp(tx.now()) })
    .where('id', '=', agentId)
    .where('certified_at', 'is', null)
    .execute();
  return true;
});

/** A certificate is for a name, whatever port it is shown on. */
function withoutPorts({ site, variant, alsoHosts }: Config): Pick<Config, 'site' | 'variant' | 'alsoHosts'> {
  const nameOf = (host: string) => new URL(`https://${host}`).hostname;
  const names = { baseUrl: `https://${new URL(site.baseUrl).hostname}`, blogDomain: nameOf(site.blogDomain) };
  return { site: { ...site, ...names }, variant, alsoHosts: alsoHosts.map(nameOf) };
}
