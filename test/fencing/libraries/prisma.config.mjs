export default { schema: 'schema.prisma', datasource: { url: 'postgresql://127.0.0.1/unused' } };
