/**
 * Classes of @nestjs/core that Nest injects, each from its own file: the root of @nestjs/core loads the whole framework, and
 * the import of this package would take a third longer.
 */
export { ApplicationConfig } from '@nestjs/core/application-config.js';
export { HttpAdapterHost } from '@nestjs/core/helpers/http-adapter-host.js';
export { ModulesContainer } from '@nestjs/core/injector/modules-container.js';
