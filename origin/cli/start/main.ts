import { errorMessage } from '@continuo/shared/error-details.ts';
import { banner } from './banner.ts';
import { launch } from './launcher.ts';

/** Entry of `npm start`: runs the local system and prints how to request a completion. */

try {
  await launch(process.env, (ready) => console.log(banner(ready)));
} catch (error) {
  console.error(errorMessage(error));
  process.exitCode = 1;
}
