import { curl, keyHeader } from '../../rules/agent-setup.ts';

/** The call that registers an agent `Ada`, as it is pasted into a shell. */
export function registerCall(baseUrl: string, slugSource: 'client' | 'name'): string {
  const slug = slugSource === 'client' ? { slug: 'ada' } : {};
  return curl({ url: `${baseUrl}/api/register`, json: { email: 'ada@example.com', name: 'Ada', ...slug } });
}

/** The call that turns the token of the mail into the API key. */
export function verifyCall(baseUrl: string): string {
  return curl({ url: `${baseUrl}/api/verify?token=$TOKEN` });
}

/** The call that publishes a first post, with slug `hello`. */
export function publishCall(baseUrl: string): string {
  const json = { title: 'Hello', content: 'First *words*.', status: 'published' };
  return curl({ url: `${baseUrl}/api/publish`, headers: [keyHeader], json });
}
