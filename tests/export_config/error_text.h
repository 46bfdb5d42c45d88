// The message of the Error that `call` throws; "" when it throws none.
#pragma once

#include <string>

#include "transporters/error.h"

template <typename Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const transporters::Error& error) {
    return error.what();
  }
  return "";
}
