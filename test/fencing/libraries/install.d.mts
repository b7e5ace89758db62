export function installLibraries(): void;
