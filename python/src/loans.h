// Objects of a graph in the hands of Python code, which may keep them longer than they live: a Loan tells the code so
// in place of reading freed memory.
#pragma once

#include <memory>
#include <typeinfo>
#include <unordered_map>

#include "transporters/error.h"
#include "transporters/graph/program.h"

namespace transporters::python {

class Loans;

struct LoanBase {
  void* object = nullptr;  // null: erased, or given back
  Loans* loans = nullptr;
};

template <typename T>
struct Loan : LoanBase {
  // Throws Error when the object is gone.
  T& get() const {
    if (object == nullptr)
      throw Error("this object of a graph was erased, or is used after the function that it was given to has returned");
    return *static_cast<T*>(object);
  }
  T& operator*() const { return get(); }
  T* operator->() const { return &get(); }
};
template <typename T>
using LoanPtr = std::shared_ptr<Loan<T>>;

// The loans of one call of a Python function; all are given back at the end of the object's life.
class Loans {
 public:
  // `program` may be changed only when `is_writable`; the graph that a translation reads is not.
  explicit Loans(Program* program, bool is_writable = true) : program_(program), is_writable_(is_writable) {}
  ~Loans() {
    for (auto& [object, loan] : lent_) *loan = {};
  }
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  // The same Loan for an object each time; null for null.
  template <typename T>
  LoanPtr<T> lend(T* object) {
    if (object == nullptr) return nullptr;
    std::shared_ptr<LoanBase>& held = lent_[object];
    if (held == nullptr) {
      held = std::make_shared<Loan<T>>();
      *held = {.object = object, .loans = this};
    }
    return std::static_pointer_cast<Loan<T>>(held);
  }
  // Ends one loan, before its object is erased.
  void end(const void* object) {
    const auto found = lent_.find(object);
    if (found == lent_.end()) return;
    *found->second = {};
    lent_.erase(found);
  }

  Program& program() const { return *program_; }
  // The program, to change it. Throws Error where it must stay as it is.
  Program& changed() {
    if (!is_writable_) throw Error("a translation reads the program; fixes can change it");
    has_changed_ = true;
    return *program_;
  }
  void set_changed() { has_changed_ = true; }
  bool has_changed() const { return has_changed_; }

 private:
  Program* program_;
  bool is_writable_;
  bool has_changed_ = false;
  std::unordered_map<const void*, std::shared_ptr<LoanBase>> lent_;
};

}  // namespace transporters::python
