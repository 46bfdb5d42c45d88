// Symbolic expressions as c10::SymInt / SymFloat / SymBool, so that ATen's kernels and model code compute with them.
#pragma once

#include <c10/core/SymBool.h>
#include <c10/core/SymFloat.h>
#include <c10/core/SymInt.h>

#include <memory>

#include "transporters/symbolic/shape_env.h"

namespace transporters::symbolic {

// Constants become plain numbers; anything else a node that keeps `env` alive and asks it when code branches.
c10::SymInt to_sym_int(const Expr& expr, const std::shared_ptr<ShapeEnv>& env);
c10::SymFloat to_sym_float(const Expr& expr, const std::shared_ptr<ShapeEnv>& env);
c10::SymBool to_sym_bool(const Expr& expr, const std::shared_ptr<ShapeEnv>& env);

// The expression behind a size; a plain number becomes a constant. Throws InternalError for a foreign node.
Expr to_expr(const c10::SymInt& value);
Expr to_expr(const c10::SymFloat& value);
Expr to_expr(const c10::SymBool& value);

}  // namespace transporters::symbolic
