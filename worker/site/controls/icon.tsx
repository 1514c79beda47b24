/** Outlines on a grid of 16 pixels. */
const PATHS = {
  play: 'M5 3.5v9l7-4.5z',
  stop: 'M4.5 4.5h7v7h-7z',
  undo: 'M6 4 3 7l3 3M3 7h6a3.5 3.5 0 0 1 0 7H7',
  theme: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  close: 'm4 4 8 8M12 4l-8 8',
  sliders: 'M2 5h6M12 5h2M2 11h2M8 11h6M10 3v4M6 9v4',
  keyboard: 'M1.5 4.5h13v7h-13zM4 7h.01M6.5 7h.01M9 7h.01M11.5 7h.01M5 9.5h6',
  redo: 'm10 4 3 3-3 3M13 7H6.5a3.5 3.5 0 0 0 0 7H9',
  branch: 'M4 2.5v11M4 10c0-3 6-1.5 6-5M10 5V2.5M7.8 4.7 10 2.5l2.2 2.2',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  star: 'm8 2 1.8 3.8 4.2.6-3 2.9.7 4.2L8 11.5l-3.7 2 .7-4.2-3-2.9 4.2-.6z',
  pencil: 'm3 13 .6-3L11 2.6l2.4 2.4L6 12.4z',
  scissors: 'M4 5.5h8M6.5 5.5v-2h3v2M5 5.5l.5 8h5l.5-8',
  tag: 'M2.5 2.5h5l6 6-5 5-6-6zM5.5 5.5h.01',
  plus: 'M8 3v10M3 8h10',
  device: 'M2.5 3.5h11v7h-11zM1 13h14',
  retry: 'M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3',
} as const;

export type IconName = keyof typeof PATHS;

/** A decoration: the button around it has the name. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d={PATHS[name]} />
  </svg>
);
