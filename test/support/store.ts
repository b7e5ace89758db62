/** The stores as the package makes them of its options. What specs know of them is the port. */
export { createStore } from '../../lib/stores/create-store.js';
