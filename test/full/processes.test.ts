import { describeFleet } from '../support/fleet.ts';

describeFleet({ engine: 'sqlite', processes: 4, strict: true });
describeFleet({ engine: 'postgres', processes: 4, strict: true });
