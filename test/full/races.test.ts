import { describeRaces } from '../support/races.ts';
import { scale } from '../support/scale.ts';

const rounds = scale > 1 ? 40 * scale : 10;

describeRaces({ engine: 'sqlite', processes: 4, rounds });
describeRaces({ engine: 'postgres', processes: 4, rounds });
