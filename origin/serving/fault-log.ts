/** Causes that are logged; further ones only appear in /health. */
const MAX_LOGGED = 32;

/** Returns a function that passes on the first message of each cause. Numbers in it may differ. */
export function oncePerCause(log: (message: string) => void): (message: string) => void {
  const logged = new Set<string>();
  return (message) => {
    const cause = message.replaceAll(/\d+/g, '#');
    if (logged.has(cause) || logged.size === MAX_LOGGED) return;
    logged.add(cause);
    log(message);
  };
}
