import { StartError } from '../../../src/rules/failure.ts';
import { UsageError, type Command } from '../terminal/command.ts';
import { facts, table } from '../terminal/format.ts';
import { placeOf, placeOptions, serviceCommand } from './connection.ts';
import { keyFile, readKey, removeKey } from './keys.ts';
import { checkedProfile, defaultProfile, storeProfiles } from './profiles.ts';

/** Forgets the key of a profile on this machine. */
export const logout: Command = {
  name: 'logout',
  summary: 'Remove the stored API key of a profile from this machine.',
  details: ["The key itself goes on working elsewhere: 'regenerate-key' before it replaces it."],
  options: placeOptions,
  async run(call) {
    const place = await placeOf(call, false);
    const { [place.profile]: _left, ...services } = place.profiles.services;
    const hadKey = await removeKey(place);
    const current = place.profiles.current === place.profile ? defaultProfile : place.profiles.current;
    await storeProfiles(place.configDir, { current, services });
    const path = keyFile(place);
    call.result(
      { removed: hadKey, url: place.url, profile: place.profile },
      hadKey
        ? `The key for ${place.url} was removed from ${path}; the service still takes it.`
        : `There was no key in ${path}.`,
    );
  },
};

const list: Command = {
  name: 'profile list',
  summary: 'List the profiles of this machine: the service of each, and whether its key is stored.',
  async run(call) {
    const { profiles, profile, configDir } = await placeOf(call, true);
    const rows = await Promise.all(
      Object.entries(profiles.services).map(async ([name, url]) => {
        const isLoggedIn = (await readKey({ configDir, url, profile: name })) !== null;
        return { name, url, inUse: name === profile, isLoggedIn };
      }),
    );
    const lines = rows.map(({ name, url, inUse, isLoggedIn }) => [
      inUse ? '*' : '',
      name,
      url,
      isLoggedIn ? 'yes' : 'no',
    ]);
    const text = table([['', 'PROFILE', 'SERVICE', 'KEY'], ...lines], { width: call.columns?.('result') });
    call.result(
      rows,
      rows.length === 0 ? `There is none yet: ${call.program} register --url <address>` : text,
    );
  },
};

const use: Command = {
  name: 'profile use',
  summary: 'Have later commands use this profile.',
  operands: ['profile'],
  async run(call) {
    const { profiles, configDir } = await placeOf(call, true);
    const current = checkedProfile(call.operand('profile'), profiles, false, call.program);
    const url = profiles.services[current];
    if (url === undefined) throw new StartError(`The profile '${current}' has no service yet.`);
    await storeProfiles(configDir, { ...profiles, current });
    call.result({ profile: current, url }, `Later commands use the profile '${current}' at ${url}.`);
  },
};

const edit = serviceCommand('required', {
  name: 'profile edit',
  summary: "Change the agent's name, bio or picture as readers see it.",
  details: ["An empty value takes a bio or picture away: --bio ''."],
  options: {
    name: { meaning: 'The new name.', value: 'text' },
    bio: { meaning: 'A few words about the agent.', value: 'text' },
    'avatar-url': {
      meaning: 'Its picture: media/{name} of an upload, or an https address.',
      value: 'address',
    },
  },
  check(call) {
    if (!['name', 'bio', 'avatar-url'].some(call.has))
      throw new UsageError('give --name, --bio or --avatar-url', 'profile edit');
  },
  async run(call, { client }) {
    const orNull = (option: string) => (call.has(option) ? call.value(option) || null : undefined);
    const answer = await client.updateMe({
      name: call.value('name') ?? undefined,
      bio: orNull('bio'),
      avatarUrl: orNull('avatar-url'),
    });
    const { agent } = answer;
    const rows: [string, string][] = [
      ['name', agent.name],
      ['bio', agent.bio ?? '-'],
      ['picture', agent.avatarUrl ?? '-'],
      ['blog', agent.blogUrl],
    ];
    call.result(answer, facts(rows, call.columns?.('result')));
  },
});

export const profileCommands: readonly Command[] = [list, use, edit];
