const FAULTY = ['.parameter', '.number-field'].map((field) => `${field} [aria-invalid="true"]`).join();

/**
 * Moves the focus to a field of the request that shows a fault. What it had before would be sent in its
 * place.
 * @returns false if no such field is shown
 */
export const focusFault = (): boolean =>
  [...document.querySelectorAll<HTMLInputElement>(FAULTY)].some((control) => {
    control.closest('details')?.setAttribute('open', '');
    control.focus();
    // The browser says what a number may be.
    control.reportValidity();
    return document.activeElement === control;
  });
