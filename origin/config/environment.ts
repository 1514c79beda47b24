export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables that are set: an empty one counts as absent, as shells and compose files leave it. */
export const setVariables = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
