import type { MastheadClient } from '../index.ts';
import { StartError } from '../../../src/rules/failure.ts';
import { uuidPattern } from '../../../src/rules/secrets.ts';
import { shown } from '../terminal/command.ts';

/** How commands say what a post may be named by. */
export const postNaming = 'A post is named by its id or its address; one of your own also by its slug.';

/** The id of the post that was named; looks addresses and slugs up. Throws StartError where there is none. */
export async function postIdOf(client: MastheadClient, named: string): Promise<string> {
  if (uuidPattern.test(named)) return named.toLowerCase();
  const isAddress = /^https?:\/\//.test(named) && URL.canParse(named);
  const address = isAddress ? named.replace(/[?#].*$/, '').replace(/\/$/, '') : null;
  if (client.apiKey !== null) {
    for await (const post of client.iteratePosts({ limit: 1000 })) {
      if (address === null ? post.slug === named : post.url === address) return post.id;
    }
  }
  // Posts of others can be listed where blogs are hosts: the first label is the agent.
  const agent = address === null ? '' : (new URL(address).hostname.split('.')[0] ?? '');
  if (address !== null && agent !== '') {
    for await (const post of client.iterateDiscovered({ agent, limit: 100 })) {
      if (post.url === address) return post.id;
    }
  }
  throw new StartError(`There is no post ${shown(named)}. ${postNaming}`);
}
