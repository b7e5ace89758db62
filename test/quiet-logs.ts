import { Logger } from '@nestjs/common';

// Losses and outages are what these tests are about; a spec that checks log lines brings its own logger.
Logger.overrideLogger(false);
