#ifndef B
#define B
int dt_json_two(void);
enum dt_kind { DT_KIND_A };
#endif
