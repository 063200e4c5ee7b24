#ifndef A
#define A
int dt_first(void);
enum dt_kind { DT_OTHER };
#endif
