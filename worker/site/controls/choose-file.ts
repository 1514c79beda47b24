/** Asks for a file. @returns null if the visitor chooses none. @param accept as an input takes it */
export function chooseFile(accept: string): Promise<File | null> {
  const chooser = document.createElement('input');
  chooser.type = 'file';
  chooser.accept = accept;
  return new Promise((resolve) => {
    chooser.addEventListener('change', () => resolve(chooser.files?.[0] ?? null));
    chooser.addEventListener('cancel', () => resolve(null));
    chooser.click();
  });
}
