import { messageOf } from '../../shared/message-of.ts';
import { systemCode } from '../system-code.ts';
import { HubError } from './hub-error.ts';

/**
 * Runs work on the disk; its faults become one line.
 * @throws HubError
 */
export async function onDisk<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof HubError) throw error;
    const code = systemCode(error);
    if (code === 'ENOSPC' || code === 'EDQUOT') throw new HubError(`the disk is full: ${place}`);
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
      throw new HubError(`no right to write ${place}`);
    throw new HubError(`cannot write ${place}: ${code ?? messageOf(error)}`);
  }
}
