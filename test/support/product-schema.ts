/** The product schema of llama.cpp's documentation, for tests and benchmarks. */
export const PRODUCT_SCHEMA = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    price: { type: 'number', minimum: 0 },
    in_stock: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 5 },
  },
  required: ['name', 'price'],
};
