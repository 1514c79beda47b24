import fc from 'fast-check';
import { TEST_SEED } from './random.ts';

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: TEST_SEED });
