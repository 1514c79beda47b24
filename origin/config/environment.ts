export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the variables that are set. Empty ones count as absent, because shells and compose files leave them so. */
export const setVariables = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
