#!/usr/bin/env node
import '../dist/masthead-agent.js';
