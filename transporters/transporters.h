// The whole interface: include this one.
#pragma once

#include "transporters/checkpoint/tensors.h"
#include "transporters/error.h"
#include "transporters/export/configs.h"
#include "transporters/export/exported_model.h"
#include "transporters/export/exporters.h"
#include "transporters/generation/eager.h"
#include "transporters/generation/generate.h"
#include "transporters/models/auto.h"
#include "transporters/registry/registry.h"
#include "transporters/runners/interpreter.h"
