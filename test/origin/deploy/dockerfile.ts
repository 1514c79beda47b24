/** Reads a Dockerfile into its stages; instructions the images do not use are errors. */

export interface Instruction {
  readonly name: string;
  readonly words: readonly string[];
}

export interface Stage {
  /** After its arguments are filled in. */
  readonly image: string;
  readonly alias: string | null;
  readonly instructions: readonly Instruction[];
}

const KNOWN = ['ARG', 'FROM', 'WORKDIR', 'COPY', 'RUN', 'ENV', 'USER', 'EXPOSE', 'HEALTHCHECK', 'CMD'];

export function readDockerfile(text: string): Stage[] {
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  const defaults = new Map<string, string>();
  for (const { name, words } of instructionsOf(text)) {
    if (name === 'FROM') {
      const [image = '', as, alias = null] = words;
      if (as !== undefined && as !== 'AS') throw new Error(`FROM ${words.join(' ')}`);
      stages.push({ image: fill(image, defaults), alias, instructions: [] });
    } else if (stages.length === 0) {
      const [variable = '', value = ''] = words.join(' ').split('=');
      if (name !== 'ARG' || value === '') throw new Error(`${name} before FROM`);
      defaults.set(variable, value);
    } else {
      stages.at(-1)!.instructions.push({ name, words });
    }
  }
  return stages;
}

/** The value of an exec-form CMD or HEALTHCHECK … CMD: a JSON array of strings. */
export function execForm(words: readonly string[]): string[] {
  const text = words.join(' ');
  const value: unknown = JSON.parse(text.slice(text.indexOf('[')));
  if (Array.isArray(value) && value.every((word) => typeof word === 'string')) return value;
  throw new Error(`not an exec form: ${text}`);
}

function instructionsOf(text: string): Instruction[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return lines
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => {
      const [name = '', ...words] = line.split(/\s+/);
      if (!KNOWN.includes(name)) throw new Error(`unknown instruction: ${line}`);
      return { name, words };
    });
}

const fill = (text: string, values: ReadonlyMap<string, string>): string =>
  text.replace(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = values.get(name);
    if (value === undefined) throw new Error(`no argument ${name}`);
    return value;
  });
