import { describeRaces } from '../support/races.ts';

// The promise is 1,000 rounds: RACE_ROUNDS=1000.
const rounds = Number(process.env['RACE_ROUNDS'] ?? 40);

describeRaces({ engine: 'sqlite', processes: 4, rounds });
describeRaces({ engine: 'postgres', processes: 4, rounds });
