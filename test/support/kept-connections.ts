/**
 * For servers that a Worker calls. workerd keeps idle connections. A server that closes them after Node's 5 s
 * may do so when its process goes on after a pause, although requests have arrived meanwhile.
 */
export const KEPT_CONNECTIONS = { keepAliveTimeout: 600_000 };
