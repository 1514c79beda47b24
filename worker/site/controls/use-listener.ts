import { useLayoutEffect, useRef } from 'preact/hooks';

/** Listens to an event of the window, from before the first paint until the component is gone. */
export function useListener<Type extends keyof WindowEventMap>(
  type: Type,
  listener: (event: WindowEventMap[Type]) => void,
): void {
  const latest = useRef(listener);
  latest.current = listener;
  useLayoutEffect(() => {
    const gone = new AbortController();
    addEventListener(type, (event) => latest.current(event), { signal: gone.signal });
    return () => gone.abort();
  }, []);
}
