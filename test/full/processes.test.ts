import { describeFleet } from '../support/fleet.ts';

describeFleet({ engine: 'sqlite', processes: 4 });
describeFleet({ engine: 'postgres', processes: 4 });
