import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';
import { withContext } from '../operator.ts';

export const adoptSecret: Command = {
  name: 'adopt-secret',
  summary: 'Go on with another secret, after the one of the database was lost.',
  details: [
    'Takes SECRET or DATA_DIR/secret as the one of this database from now on, and makes DATA_DIR/secret if there is',
    'neither. Stop the service first. Mail that waits was sealed with the former one: it goes out if that is put back',
    'and adopted within 7 days, and is given up else. Posts, keys and tokens do not depend on it; answers remembered for',
    'an Idempotency-Key and counted calls of client addresses are forgotten.',
  ],
  operands: [],
  options: jsonOption,
  async run(call) {
    const { countUnreadableMail } = await import('../../services/outbox.ts');
    const unreadable = await withContext(call, countUnreadableMail, 'adopted');
    if (call.has('json')) return call.outJson({ adopted: true, unreadable });
    call.out('The secret is the one of this database from now on.');
    if (unreadable > 0)
      call.err(`${unreadable} messages wait for the former one: they go out if it comes back.`);
  },
};
