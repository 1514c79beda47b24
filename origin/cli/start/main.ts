import { banner } from './banner.ts';
import { launch } from './launcher.ts';

/** Entry of `npm start`: runs the local system and prints how to request a completion. */

process.exitCode = await launch(process.env, (ready) => console.log(banner(ready)));
