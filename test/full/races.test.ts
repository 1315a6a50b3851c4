import { describeRaces } from '../support/races.ts';
import { scale } from '../support/scale.ts';

const rounds = 40 * scale;

describeRaces({ engine: 'sqlite', processes: 4, rounds });
describeRaces({ engine: 'postgres', processes: 4, rounds });
