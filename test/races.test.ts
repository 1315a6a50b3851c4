import { describeRaces } from './support/races.ts';

describeRaces({ engine: 'sqlite', processes: 2, rounds: 4 });
describeRaces({ engine: 'postgres', processes: 2, rounds: 4 });
