// What the command line knows by name and this build lacks; one place for all of it.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/common.h"
#include "transporters/export/configs.h"

namespace transporters::cli {

// Adds to `export` the options that only give an error.
void add_unavailable_export_options(CLI::App& command);

// Throws UsageError for a format without an exporter.
void check_available(ExportFormat format);

}  // namespace transporters::cli
