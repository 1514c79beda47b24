import type { StructuredLogsHandler } from 'miniflare';

/** On a busy machine, or after a restart, workerd reports that an alarm is late. Alarms may be late. */
const LATE_ALARM = /^NOSENTRY SQLite alarm overdue/;

/** Lines that workerd and the code in it log. Tests assert those they expect; others are printed. */
export class WorkerdLog {
  readonly #expected: RegExp | null;
  readonly #lines: string[] = [];

  constructor(expected: RegExp | null = null) {
    this.#expected = expected;
  }

  /** Expected lines so far. They arrive some milliseconds after their cause. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  readonly handler: StructuredLogsHandler = ({ level, message }) => {
    if (LATE_ALARM.test(message)) return;
    if (this.#expected?.test(message)) this.#lines.push(message);
    else if (level === 'error' || level === 'warn') console.error(message);
    else console.log(message);
  };
}
