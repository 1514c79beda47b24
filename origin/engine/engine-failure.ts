/** The engine cannot go on: its books do not add up, or the model fails again and again. Starting anew may help. */
export class EngineFailure extends Error {
  override readonly name = 'EngineFailure';
}
