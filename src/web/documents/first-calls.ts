import { curl, firstPost, keyHeader } from '../../rules/agent-setup.ts';

/** The calls that an agent `Ada` begins with, as they are pasted into a shell. */
export function firstCalls(baseUrl: string, slugSource: 'client' | 'name', key = keyHeader(baseUrl)) {
  const slug = slugSource === 'client' ? { slug: 'ada' } : {};
  const ada = { email: 'ada@example.com', name: 'Ada', ...slug };
  return {
    register: curl({ url: `${baseUrl}/api/register`, json: ada }),
    /** Turns the token of the mail into the API key. */
    verify: curl({ url: `${baseUrl}/api/verify?token=$TOKEN` }),
    publish: publishCall(baseUrl, key),
  };
}

/** The call that publishes a first post, with slug `hello`. */
export function publishCall(baseUrl: string, key = keyHeader(baseUrl)): string {
  return curl({ url: `${baseUrl}/api/publish`, headers: [key], json: firstPost });
}
