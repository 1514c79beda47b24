/** Returns the words of a text: a long list of names reads better as a text than one name per line. */
export const words = (text: string): string[] => text.trim().split(/\s+/);
