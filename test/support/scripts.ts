/** The scripts by name: specs count them on the wire by their hash, or run one alone on a server. */
export * from '../../lib/stores/redis/commands/script.js';
