/*
 * The table through which a program uses equations of motion that it loads at run time. `robodyn
 * export` writes a copy of this header beside the code of each robot.
 *
 * Arrays have one number for each joint, in the order of joint_names; units are rad, m, N m, N and
 * their combinations with s. Matrices are row-major. A function that was not exported is NULL.
 */
#ifndef ROBODYN_PLUGIN_H
#define ROBODYN_PLUGIN_H

#ifdef __cplusplus
extern "C" {
#endif

#define ROBODYN_PLUGIN_VERSION 1

typedef struct {
    int version;             /* ROBODYN_PLUGIN_VERSION of the table */
    const char *robot;       /* name of the robot */
    const char *urdf_sha256; /* of the description; may be empty */
    int joints;
    const char *const *joint_names;

    /* Standard parameters; none (0 and NULL) if the code was exported without --parametric. Then
       the functions ignore their argument `parameters`, which may be NULL. */
    int parameters;
    const char *const *parameter_names;
    const double *nominal;

    /* Links to which a payload can be fixed; none without --parametric. */
    int links;
    const char *const *link_names;

    void (*gravity)(const double *parameters, const double *q, double *tau);
    void (*coriolis)(const double *parameters, const double *q, const double *qd, double *tau);
    void (*friction)(const double *parameters, const double *q, const double *qd, double *tau);
    void (*mass_matrix)(const double *parameters, const double *q, double *matrix);
    void (*inverse_dynamics)(const double *parameters, const double *q, const double *qd,
                             const double *qdd, double *tau);
    void (*forward_dynamics)(const double *parameters, const double *q, const double *qd,
                             const double *tau, double *qdd);

    /* Computes the parameters with a payload: mass, kg; centre of mass in the link frame, m;
       inertia about the centre of mass, Ixx Ixy Ixz Iyy Iyz Izz in the axes of the link, kg m^2.
       Returns 1, or 0 if there is no such link. */
    int (*add_payload)(const double *parameters, int link, double mass, const double *com,
                       const double *inertia, double *loaded);

    /* Reads the text of a file that `robodyn export --values` wrote. Returns 0 if the parameters
       were set. Else they are unchanged, and the result is 1 for another format, 2 for a robot with
       another structure, 3 for too few or too many values, 4 for a value that is not a number. */
    int (*read_values)(const char *text, double *parameters);
} robodyn_plugin;

/* The one function that a plugin exports. */
#define ROBODYN_PLUGIN_SYMBOL "robodyn_plugin_table"
const robodyn_plugin *robodyn_plugin_table(void);

#ifdef __cplusplus
}
#endif

#endif
