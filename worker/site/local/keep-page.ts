/**
 * Has the browser keep the page, so that it opens without a connection.
 * @returns whether it does: pages from another host over plain HTTP have no service workers, and browsers may
 *   refuse them
 */
export async function keepPage(): Promise<boolean> {
  if (!('serviceWorker' in navigator)) return false;
  try {
    const { active, installing } = await navigator.serviceWorker.register('/service-worker.js');
    return active !== null || (installing !== null && (await isInstalled(installing)));
  } catch {
    return false;
  }
}

const isInstalled = (worker: ServiceWorker): Promise<boolean> =>
  new Promise((resolve) => {
    const look = () => {
      if (worker.state === 'activated') resolve(true);
      if (worker.state === 'redundant') resolve(false);
    };
    worker.addEventListener('statechange', look);
    look();
  });
