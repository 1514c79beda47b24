/**
 * Characters that are held of one event, or of one error, of a server. What is longer is neither: it would fill the
 * memory that all requests share.
 */
export const MOST_HELD = 16 * 1024 * 1024;
